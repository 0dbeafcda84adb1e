# Servers that do not run: restored from a backup, started once, and stopped.
rm freshet-data
freshet backup --data-dir "$DATA" backups
for dir in freshet-data restored; do
	freshet restore backups --data-dir $dir
	freshet serve --data-dir $dir --http off --https 127.0.0.1:0 --ops off --stream off --stream-tls off > $dir.log 2>&1 &
	until grep -q 'Freshet is ready' $dir.log; do sleep 0.1; done
	kill $!
	wait $!
done
