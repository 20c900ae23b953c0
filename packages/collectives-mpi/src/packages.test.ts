/** The binaries' packages: one a platform, of the very version that @opt/collectives-mpi asks for. */
import { readdirSync, readFileSync } from "node:fs";
import { describe, expect, it } from "vitest";

const npm = new URL("../../../native/mpi/npm/", import.meta.url);
const read = (url: URL) => JSON.parse(readFileSync(url, "utf8"));
const { optionalDependencies, scripts } = read(new URL("../package.json", import.meta.url));
const platforms = readdirSync(npm);

describe.each(platforms)("platform %s", (platform) => {
  const manifest = read(new URL(`${platform}/package.json`, npm));

  it("is asked for by its exact version", () => {
    expect(optionalDependencies[manifest.name]).toBe(manifest.version);
  });

  it("is what its name says, and holds the binary alone", () => {
    const [os, cpu, libc] = platform.split("-");
    expect(manifest.name).toBe(`@opt/collectives-mpi-${platform}`);
    expect([manifest.os, manifest.cpu]).toEqual([[os], [cpu]]);
    expect(manifest.libc).toEqual(libc === undefined ? undefined : [libc === "gnu" ? "glibc" : libc]);
    expect(manifest.files).toEqual(["opt_mpi.node"]);
  });

  it("runs nothing when it is installed", () => {
    expect(Object.keys(manifest.scripts)).toEqual(["prepack"]); // before it is packed
  });
});

it("asks for no other package, and runs nothing when it is installed", () => {
  expect(Object.keys(optionalDependencies)).toHaveLength(platforms.length);
  expect(Object.keys(scripts ?? {}).filter((name) => name.includes("install") || name === "prepare")).toEqual([]);
});
