// What changes between two objects, and how to change a copy of one.
const plain = x => x !== null && typeof x === 'object' && !Array.isArray(x)

/** The merge patch (RFC 7396) that makes b of a; undefined when nothing changes. */
export function mergePatch(a, b) {
  const out = {}
  for (const key of new Set([...Object.keys(a), ...Object.keys(b)])) {
    if (!(key in b)) out[key] = null
    else if (plain(a[key]) && plain(b[key])) {
      const inner = mergePatch(a[key], b[key])
      if (inner) out[key] = inner
    } else if (JSON.stringify(a[key]) !== JSON.stringify(b[key])) out[key] = b[key]
  }
  return Object.keys(out).length ? out : undefined
}

/** Sets a value at a path, or takes it away; what is empty then goes too. */
export function put(o, path, value) {
  const [key, ...rest] = path
  if (rest.length) {
    const inner = put(plain(o[key]) ? o[key] : {}, rest, value)
    if (Object.keys(inner).length) o[key] = inner
    else delete o[key]
  } else if (value === undefined || value === '') delete o[key]
  else o[key] = value
  return o
}
