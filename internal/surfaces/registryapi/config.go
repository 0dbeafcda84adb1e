package registryapi

import "freshet/internal/registry/schemas"

// getGlobalConfig always responds with NONE.
//
// Quirk: that is not the level in force; clients must request the level of a subject.
func (c *call) getGlobalConfig() error {
	return c.reply([]byte(`{"compatibilityLevel":"NONE"}`))
}

func (c *call) getConfig() error {
	level, err := c.Registry.Level(c.R.Context(), c.subject)
	if err != nil {
		return err
	}
	return c.reply([]byte(`{"compatibilityLevel":"` + level.String() + `"}`))
}

func (c *call) putConfig() error {
	if err := c.requireNamespace(c.subject); err != nil {
		return err
	}
	var req struct {
		Compatibility      string `json:"compatibility"`
		CompatibilityLevel string `json:"compatibilityLevel"`
	}
	if err := c.decode(&req); err != nil {
		return err
	}
	if req.Compatibility == "" {
		req.Compatibility = req.CompatibilityLevel
	}
	level, err := schemas.ParseLevel(req.Compatibility)
	if err != nil {
		return err
	}
	if err := c.Registry.SetLevel(c.R.Context(), c.subject, level); err != nil {
		return err
	}
	c.Changed = true
	// Quirk: the response has both names, because the Java client reads the name of the
	// request.
	return c.reply([]byte(`{"compatibilityLevel":"` + level.String() + `","compatibility":"` + level.String() + `"}`))
}

// getMode needs no permission, only a valid token, like the global configuration:
// clients request both before they write.
func (c *call) getMode() error {
	mode, err := c.Registry.Mode(c.R.Context())
	if err != nil {
		return err
	}
	return c.reply([]byte(`{"mode":"` + mode.String() + `"}`))
}

func (c *call) authorizeMode() error { return c.require(updateMode, c.Scope, "mode") }

func (c *call) putMode() error {
	var req struct {
		Mode string `json:"mode"`
	}
	if err := c.decode(&req); err != nil {
		return err
	}
	mode, err := schemas.ParseMode(req.Mode)
	if err != nil {
		return err
	}
	if err := c.Registry.SetMode(c.R.Context(), mode, c.query().flag("force")); err != nil {
		return err
	}
	c.Changed = true
	return c.reply([]byte(`{"mode":"` + mode.String() + `"}`))
}
