package config

// Settings lists the path and the environment variable of every setting.
func Settings() [][2]string {
	list, _ := Default().settings()
	out := make([][2]string, len(list))
	for i, s := range list {
		out[i] = [2]string{s.path, s.variable}
	}
	return out
}
