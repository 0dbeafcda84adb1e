// Differences between two objects, and changes of a copy.
const isObject = x => x !== null && typeof x === 'object' && !Array.isArray(x)

/** Returns the merge patch (RFC 7396) that turns a into b; undefined if they are equal. */
export function mergePatch(a, b) {
  const out = {}
  for (const key of new Set([...Object.keys(a), ...Object.keys(b)])) {
    if (!(key in b)) {
      out[key] = null
    } else if (isObject(a[key]) && isObject(b[key])) {
      const inner = mergePatch(a[key], b[key])
      if (inner) out[key] = inner
    } else if (JSON.stringify(a[key]) !== JSON.stringify(b[key])) {
      out[key] = b[key]
    }
  }
  return Object.keys(out).length ? out : undefined
}

/** Sets a value at a path, or removes it if it is empty. Objects that become empty are removed too. */
export function setPath(o, path, value) {
  const [key, ...rest] = path
  if (rest.length) {
    const inner = setPath(isObject(o[key]) ? o[key] : {}, rest, value)
    if (Object.keys(inner).length) o[key] = inner
    else delete o[key]
  } else if (value === undefined || value === '') {
    delete o[key]
  } else {
    o[key] = value
  }
  return o
}
