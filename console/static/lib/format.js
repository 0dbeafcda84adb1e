// Formatting and parsing of values. Pages use these functions and have no formats of their own.
const units = [[86400, 'd'], [3600, 'h'], [60, 'm'], [1, 's']]

/** A duration in one or two units: 3d 4h, 12m, 5s. */
export function duration(seconds) {
  let s = Math.max(0, Math.floor(seconds))
  if (s > 400 * 86400) return `${Math.floor(s / 31557600)}y`
  const parts = []
  for (const [size, name] of units) {
    if (s < size && !(size === 1 && !parts.length)) {
      if (parts.length) break
      continue
    }
    parts.push(`${Math.floor(s / size)}${name}`)
    s %= size
    if (parts.length === 2 || seconds >= 10 * size) break
  }
  return parts.join(' ')
}

/** A time relative to now: "3m ago", "in 2d 4h". */
export function relative(time, now = Date.now()) {
  const t = typeof time === 'number' ? time : Date.parse(time)
  if (Number.isNaN(t)) return '–'
  const age = (now - t) / 1000
  if (Math.abs(age) < 1) return 'now'
  return age >= 0 ? `${duration(age)} ago` : `in ${duration(-age)}`
}

/** A date and time, in the local time zone or in UTC. */
export function absolute(time, utc = false) {
  const t = new Date(time)
  if (Number.isNaN(t.getTime())) return '–'
  if (utc) return t.toISOString().replace('T', ' ').replace(/\.\d+Z/, ' UTC')
  const two = n => String(n).padStart(2, '0')
  const date = `${t.getFullYear()}-${two(t.getMonth() + 1)}-${two(t.getDate())}`
  return `${date} ${two(t.getHours())}:${two(t.getMinutes())}:${two(t.getSeconds())}`
}

/** 1234567 as 1,234,567. */
export const count = n =>
  n == null || Number.isNaN(+n) ? '–' : (+n).toLocaleString('en-US', { maximumFractionDigits: 2 })

/** A number with its noun: 1 member, 3 members. */
export const countOf = (n, one, many = one + 's') => `${count(n)} ${n === 1 ? one : many}`

/** A number in three digits: 1.2k, 34M. */
export function short(n) {
  if (n == null || Number.isNaN(+n)) return '–'
  n = +n
  for (const [size, name] of [[1e12, 'T'], [1e9, 'G'], [1e6, 'M'], [1e3, 'k']]) {
    if (Math.abs(n) >= size) return trim(n / size) + name
  }
  return trim(n)
}

const trim = n => String(+n.toPrecision(Math.abs(n) >= 100 ? 3 : 2))

/** A number of bytes: 1.5 KiB. */
export function bytes(n) {
  if (n == null || Number.isNaN(+n)) return '–'
  n = +n
  const names = ['B', 'KiB', 'MiB', 'GiB', 'TiB']
  let i = 0
  while (Math.abs(n) >= 1024 && i < names.length - 1) {
    n /= 1024
    i++
  }
  return `${i ? n.toFixed(n < 10 ? 1 : 0) : n} ${names[i]}`
}

const suffixes = { m: 1e-3, k: 1e3, M: 1e6, G: 1e9, T: 1e12, Ki: 2 ** 10, Mi: 2 ** 20, Gi: 2 ** 30, Ti: 2 ** 40 }

/** The number of a Kubernetes quantity: 50k, 1Gi, 198159060Ki. */
export function quantity(text) {
  const m = /^([+-]?[\d.]+(?:e\d+)?)([a-zA-Z]*)$/.exec(String(text ?? ''))
  return m ? +m[1] * (m[2] ? suffixes[m[2]] ?? NaN : 1) : NaN
}

/** Bytes in hex with a text column, for binary payloads. */
export function hexdump(data, limit = 4096) {
  const lines = []
  for (let i = 0; i < Math.min(data.length, limit); i += 16) {
    const row = [...data.subarray(i, i + 16)]
    const hex = row.map(b => b.toString(16).padStart(2, '0')).join(' ')
    const text = row.map(b => b > 31 && b < 127 ? String.fromCharCode(b) : '.').join('')
    lines.push(`${i.toString(16).padStart(6, '0')}  ${hex.padEnd(47)}  ${text}`)
  }
  return lines.join('\n')
}

/** Decodes base64 or base64url into bytes. */
export function fromBase64(text) {
  const standard = String(text).replace(/-/g, '+').replace(/_/g, '/').replace(/\s/g, '')
  return Uint8Array.from(atob(standard), c => c.charCodeAt(0))
}

export const toBase64 = data => btoa(Array.from(new Uint8Array(data), b => String.fromCharCode(b)).join(''))
export const toBase64URL = data => toBase64(data).replace(/\+/g, '-').replace(/\//g, '_').replace(/=+$/, '')

/** JSON with indentation; other text unchanged. */
export function indentJSON(text) {
  try {
    return JSON.stringify(JSON.parse(text), null, 2)
  } catch {
    return text
  }
}

/** The YAML of an object without managedFields, and on request without its status. */
export function withoutManagedFields(yaml, keepStatus = true) {
  const out = []
  let skip = -1 // indentation of the key whose value is left out
  for (const line of yaml.split('\n')) {
    const indent = line.search(/\S/)
    if (skip >= 0 && (indent > skip || indent === skip && line[indent] === '-' || indent < 0)) continue
    skip = -1
    if (/^ {2}managedFields:/.test(line)) {
      skip = 2
      continue
    }
    if (!keepStatus && /^status:/.test(line)) {
      skip = 0
      continue
    }
    out.push(line)
  }
  return out.join('\n')
}
