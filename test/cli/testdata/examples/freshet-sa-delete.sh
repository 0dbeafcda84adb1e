for n in old old-1 old-2; do freshet sa create $n || true; done
