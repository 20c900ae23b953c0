/**
 * The pages of docs/ that a package's README names. A tarball has no docs/, so a relative link would be dead there. While the site
 * has no address, a README says `*Memory* (docs/guides/memory.md)`. Then it has a link.
 */
import { existsSync } from "node:fs";
import { join } from "node:path";
import { root } from "./run.mjs";

/** A title and its page: as text, as a relative link, or as a link to the site. */
const NAMED =
  /\*(?<title>[^*\n]+)\* \(docs\/(?<page>[\w/-]+)\.md(?<anchor>#[\w-]+)?\)|\[(?<text>[^\]]+)\]\((?<start>(?:\.\.\/)+docs|https?:\/\/[^)\s]+?)\/(?<place>[\w-]+\/[\w-]+)(?:\.md)?(?<hash>#[\w-]+)?\)/g;

/**
 * Writes each of them in another form.
 * @param {string} readme
 * @param {(page: { title: string, page: string, anchor: string }) => string} write `page` is like guides/memory, `anchor` like #views
 */
export function withPages(readme, write) {
  return readme.replace(NAMED, (whole, ...rest) => {
    const { title, text = title, page, place = page, start = "", anchor, hash = anchor } = rest.at(-1);
    if (existsSync(join(root, "docs", `${place}.md`))) return write({ title: text, page: place, anchor: hash ?? "" });
    if (start.startsWith("http")) return whole;
    throw new Error(`[readme] "${whole}" names no page of docs/.`);
  });
}

/** The form for readers of the tarball. @param {string} readme @param {string} [homepage] the site's address */
export function forReaders(readme, homepage) {
  return withPages(readme, ({ title, page, anchor }) =>
    homepage === undefined
      ? `*${title}* (docs/${page}.md${anchor})`
      : `[${title}](${homepage.replace(/\/$/, "")}/${page}${anchor})`,
  );
}
