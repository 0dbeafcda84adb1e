freshet sa create revoker
for key in leaked old-1 old-2; do freshet apikey create $key --account revoker --out token; done
