package identity

// Key returns an API key by its id.
func (d *Directory) Key(id string) (*Key, bool) {
	_, rec := d.key(id)
	if rec == nil {
		return nil, false
	}
	k := rec.live.Load()
	return k, k != nil
}
