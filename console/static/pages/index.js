// The pages, in the order of the menu. One file each, loaded when first opened. A
// module's default export is open(ctx) → view function; ctx has org, names, signal
// (ends when the page is left) and nothing else: the query is in the router's route.
export const pages = [
  { id: 'overview', title: 'Overview', section: '', load: () => import('./overview.js') },
]
