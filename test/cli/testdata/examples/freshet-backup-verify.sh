freshet backup backups
freshet backup - > freshet.tar
