freshet user delete ben || true; freshet user delete cleo || true
