// What the caller may do, from the server's own answer. It only greys out: the
// server decides every call anyway.
import { post } from './api.js'
import { on, update } from './store.js'

/** @type {Map<string, {all: Set<string>, rules: any[]} | null>} by organization; null while it is asked for */
const known = new Map()
on('signedin', () => known.clear())
on('signedout', () => known.clear())

async function load(org) {
  known.set(org, null)
  try {
    const { status } = await post('/apis/authorization.vendor.io/v1alpha1/selfsubjectrulesreviews', { spec: { namespace: org } }, { background: true })
    known.set(org, { all: new Set(status.rules?.flatMap(r => r.permissions ?? []) ?? []), rules: status.rules ?? [] })
  } catch {
    known.set(org, { all: new Set(), rules: [], failed: true })
    setTimeout(() => known.delete(org), 5000)
  }
  update()
}

/** The rules that hold for us in an organization; null while they are not known. */
export function rulesIn(org) {
  if (!known.has(org)) load(org)
  return known.get(org)
}

/** Asks again, after roles were changed. */
export const forget = () => known.clear()

/**
 * Whether a permission is held anywhere in the organization. Where is not looked at:
 * a binding may be narrower, and then the server says so. True while unknown, so that
 * nothing flickers grey.
 */
export function can(org, permission) {
  const mine = rulesIn(org)
  return !mine || mine.failed || permission.split(' or ').some(p => mine.all.has(p))
}

/** "" when allowed, else why not, in words for a tooltip. */
export const missing = (org, permission) =>
  can(org, permission) ? '' : `Your role does not have the permission ${permission} in ${org}.`
