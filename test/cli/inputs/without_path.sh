# without_path.sh FOLDER COMMAND…: runs a command whose PATH has only the folder, and prints the exit code.
program=$(command -v "$2")
PATH=$1 "$program" "${@:3}"
echo "exit code $?" >&2
