# without_path.sh FOLDER COMMAND…: runs a command that sees no programs but those in the folder; prints its exit code.
program=$(command -v "$2")
PATH=$1 "$program" "${@:3}"
echo "exit code $?" >&2
