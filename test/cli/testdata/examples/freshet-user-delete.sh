freshet user create dan --email dan@example.org
