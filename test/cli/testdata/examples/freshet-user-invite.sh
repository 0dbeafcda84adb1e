freshet user create ann --email ann@example.org || true
