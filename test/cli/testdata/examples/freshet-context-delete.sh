freshet login --name staging freshet-data/admin.json
