/** How the site's search ranks: the same in the page and in its test. VitePress sends these functions as text, so each stands alone. */

/** Pages that answer no question: lists of links, and records of decisions. */
export const isUnsearched = (page: string): boolean => /^decisions\/|(^|\/)index\.md$/.test(page);

/** Options of MiniSearch, for the index and for questions. */
export const INDEX = {
  // Words that say nothing find nothing.
  processTerm: (term: string) =>
    /^(a|an|and|at|by|do|for|from|how|i|in|is|it|my|of|on|or|the|to|with|without|your)$/i.test(term)
      ? null
      : term.toLowerCase(),
};

export const RANKING = {
  prefix: (term: string) => term.length > 2,
  fuzzy: (term: string) => (term.length > 3 ? 0.2 : false),
  boost: { title: 12, titles: 2, text: 1 },
  // Pages before symbols, and what to do before what to know.
  boostDocument: (id: string) => (/\/api\//.test(id) ? 0.2 : /\/how-to\/|\/fine-tune-a-/.test(id) ? 2 : 1),
};
