// The caller's permissions, as the server reports them. The console only disables
// controls with them: the server authorizes every request.
import { post } from './api.js'
import { on, update } from './store.js'

/** @type {Map<string, {all: Set<string>, rules: any[]} | null>} by organization; null while they are loaded */
const cache = new Map()
on('signedin', () => cache.clear())
on('signedout', () => cache.clear())

const reviewURL = '/apis/authorization.vendor.io/v1alpha1/selfsubjectrulesreviews'

async function load(org) {
  cache.set(org, null)
  try {
    const { status } = await post(reviewURL, { spec: { namespace: org } }, { background: true })
    const rules = status.rules ?? []
    cache.set(org, { all: new Set(rules.flatMap(r => r.permissions ?? [])), rules })
  } catch {
    cache.set(org, { all: new Set(), rules: [], failed: true })
    setTimeout(() => cache.delete(org), 5000)
  }
  update()
}

/** The caller's rules in an organization; null until they are loaded. */
export function rulesIn(org) {
  if (!cache.has(org)) load(org)
  return cache.get(org)
}

/** Loads the permissions again, after roles were changed. */
export const clearPermissions = () => cache.clear()

/**
 * Whether the caller has a permission anywhere in the organization. A binding may be
 * restricted to some resources; then the server denies the request. Returns true until
 * the rules are loaded, so that controls do not flicker.
 */
export function can(org, permission) {
  const held = rulesIn(org)
  return !held || held.failed || permission.split(' or ').some(p => held.all.has(p))
}

/** "" if the permission is held, else the reason, for a tooltip. */
export const missingPermission = (org, permission) =>
  can(org, permission) ? '' : `Your role does not have the permission ${permission} in ${org}.`
