freshet sa create rotator
freshet apikey create worker --account rotator --expires 90d --out token
