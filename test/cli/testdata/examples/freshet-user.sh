freshet user delete ann || true
