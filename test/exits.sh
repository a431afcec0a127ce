# exits.sh CODE COMMAND…: succeeds if the command ends with that exit code.
want=$1
shift
"$@"
got=$?
[ "$got" = "$want" ] || { echo "exit code $got, expected $want" >&2; exit 1; }
