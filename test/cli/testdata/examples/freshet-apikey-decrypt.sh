freshet sa create opener
freshet apikey create opened --account opener --out first.token
cp "$(find home/.config/freshet/keys -name opened.pem)" private.pem
