import { expect, it } from "vitest";
import { forReaders } from "./readme-pages.mjs";

const SITE = "https://opt.example/site/";
const text = "See *Memory* (docs/guides/memory.md) and *Names* (docs/guides/migration.md#from-pytorch).";
const links =
  "See [Memory](https://opt.example/site/guides/memory) and [Names](https://opt.example/site/guides/migration#from-pytorch).";

it("a page is named in text while the site has no address", () => {
  const relative =
    "See [Memory](../../docs/guides/memory.md) and [Names](../../docs/guides/migration.md#from-pytorch).";
  for (const each of [relative, text, links]) expect(forReaders(each)).toBe(text);
});

it("a page is a link as soon as the site has an address", () => {
  for (const each of [text, links.replaceAll("opt.example", "old.example")]) expect(forReaders(each, SITE)).toBe(links);
});

it("other links stay", () => {
  const other = "[FORMAT.md](FORMAT.md), [a paper](https://papers.example/guides/adam), *short* (see above)";
  expect(forReaders(other, SITE)).toBe(other);
});

it("a page that does not exist is an error", () => {
  expect(() => forReaders("*Nothing* (docs/guides/nothing.md)")).toThrow(
    '"*Nothing* (docs/guides/nothing.md)" names no page',
  );
  expect(() => forReaders("[Nothing](../../docs/guides/nothing.md)")).toThrow("names no page");
});
