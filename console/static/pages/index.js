// The pages, in the order of the menu. One file each, loaded when first opened. A
// module's default export is open(ctx) → view function; ctx has org, names, signal
// (ends when the page is left) and nothing else: the query is in the router's route.
export const pages = [
  { id: 'overview', title: 'Overview', section: '', load: () => import('./overview.js') },
  { id: 'clusters', title: 'Clusters', section: 'Messaging', load: () => import('./clusters.js') },
  { id: 'instances', title: 'Instances', section: 'Messaging', load: () => import('./instances.js') },
  { id: 'topics', title: 'Topics', section: 'Messaging', load: () => import('./topics.js') },
  { id: 'schemas', title: 'Schemas', section: 'Messaging', load: () => import('./schemas.js') },
  { id: 'groups', title: 'Groups', section: 'Messaging', load: () => import('./groups.js') },
  { id: 'accounts', title: 'Service accounts', section: 'Access', load: () => import('./accounts.js') },
  { id: 'keys', title: 'API keys', section: 'Access', load: () => import('./keys.js') },
  { id: 'users', title: 'Users', section: 'Access', load: () => import('./users.js') },
  { id: 'roles', title: 'Roles', section: 'Access', load: () => import('./roles.js') },
  { id: 'system', title: 'System', section: 'Server', load: () => import('./system.js') },
  { id: 'reference', title: 'API reference', section: 'Server', load: () => import('./reference.js') },
]
