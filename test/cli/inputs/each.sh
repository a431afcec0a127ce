# each.sh CODE FILE…: checks that burin compile ends with that exit code for every file.
want=$1
shift
for file in "$@"; do
  burin compile "$file" -o /dev/null
  got=$?
  [ "$got" = "$want" ] || { echo "$file: exit code $got, expected $want" >&2; exit 1; }
done
