/** Groups of pages: a landing page has them as headings with lists of links, and the sidebar is read from it. */
import { readFileSync } from "node:fs";

const docs = new URL("../", import.meta.url);

export interface Item {
  readonly text: string;
  readonly link: string;
}

/** The title of a page of docs/, named like `guides/memory`. */
export function titleOf(page: string): string {
  const [, title = page] = /^# (.*)/m.exec(readFileSync(new URL(`${page}.md`, docs), "utf8")) ?? [];
  return title.replaceAll("`", "");
}

/** What the index.md of a folder lists under each heading. */
export function groupsOf(folder: string): { text: string; items: Item[] }[] {
  const [, ...sections] = readFileSync(new URL(`${folder}/index.md`, docs), "utf8").split(/^## /m);
  return sections.map((section) => ({
    text: section.split("\n")[0]!,
    items: [...section.matchAll(/^- \[(.+?)\]\((.+?)\.md\)/gm)].map(([, text, page]) => ({
      text: text!.replaceAll("`", ""),
      link: new URL(page!, `file:///${folder}/`).pathname,
    })),
  }));
}
