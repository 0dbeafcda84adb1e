freshet backup backups
