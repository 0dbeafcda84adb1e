// The pages, in the order of the menu. Each module is loaded when its page is first
// opened. Its default export is open(ctx), which returns the function that renders the
// page. ctx has org, names, and signal, which aborts when the page is closed. The query
// is in the router's route.
export const pages = [
  { id: 'overview', title: 'Overview', section: '', load: () => import('./overview.js') },
  { id: 'clusters', title: 'Clusters', section: 'Messaging', load: () => import('./clusters.js') },
  { id: 'instances', title: 'Instances', section: 'Messaging', load: () => import('./instances.js') },
  { id: 'topics', title: 'Topics', section: 'Messaging', load: () => import('./topics.js') },
  { id: 'schemas', title: 'Schemas', section: 'Messaging', load: () => import('./schemas.js') },
  { id: 'groups', title: 'Consumer groups', section: 'Messaging', load: () => import('./groups.js') },
  { id: 'accounts', title: 'Service accounts', section: 'Access', load: () => import('./accounts.js') },
  { id: 'keys', title: 'API keys', section: 'Access', load: () => import('./keys.js') },
  { id: 'users', title: 'Users', section: 'Access', load: () => import('./users.js') },
  { id: 'roles', title: 'Roles', section: 'Access', load: () => import('./roles.js') },
  { id: 'system', title: 'System', section: 'Server', load: () => import('./system.js') },
  { id: 'reference', title: 'API reference', section: 'Server', load: () => import('./reference.js') },
]
