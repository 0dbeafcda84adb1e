freshet login --name staging freshet-data/admin.json
freshet login --name work freshet-data/admin.json
