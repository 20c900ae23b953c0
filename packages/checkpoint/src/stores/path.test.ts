import * as node from "node:path";
import { expect, it } from "vitest";
import { basename, dirname, join } from "./path";

it.each(["a", "a/b", "/a", "/a/b/", "/", "a/", "./a", "../a/b", "a/b/c.d"])("%s: as Node says", (path) => {
  expect(basename(path)).toBe(node.basename(path));
  expect(dirname(path)).toBe(node.dirname(path));
});

it("joins what is not empty", () => {
  expect([join("a", "", "b/", "/c"), join("/", "a"), join("", "a")]).toEqual(["a/b/c", "/a", "a"]);
});
