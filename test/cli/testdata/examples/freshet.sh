cp freshet-data/admin.json credentials.json
