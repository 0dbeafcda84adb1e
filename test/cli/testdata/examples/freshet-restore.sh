freshet backup backups
freshet backup - > freshet.tar
freshet backup --without-keys keyless
cp "$DATA/encryption.key" .
