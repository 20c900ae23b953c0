/** The lock file serves every contributor: each platform's binaries, and no registry's address. */
import { readFileSync } from "node:fs";
import { join } from "node:path";
import { expect, it } from "vitest";
import { root } from "./run.mjs";

interface Locked {
  readonly resolved?: string;
  readonly link?: boolean;
  readonly optionalDependencies?: Record<string, string>;
}

const { packages } = JSON.parse(readFileSync(join(root, "package-lock.json"), "utf8")) as {
  packages: Record<string, Locked>;
};

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
