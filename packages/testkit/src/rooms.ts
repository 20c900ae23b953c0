/** A package's rooms: folders, and files named alone, that import one another one way. */
import { existsSync, readdirSync, readFileSync } from "node:fs";
import { posix } from "node:path";
import { expect, it } from "vitest";

/**
 * Rooms in order: each imports only from those before it. Rooms in one list are one layer, and have no circle.
 * A room is a folder (`"save"`, `"save/step"`) or a file (`"engine.ts"`). The longest name that fits a file is its room.
 * A file beside the folders that has no room is an entry of the package: only other entries import it.
 */
export type Rooms = readonly (string | readonly string[])[];

/** Tests that the sources in `folder` keep the order of `rooms`, types included: `roomsTest(new URL(".", import.meta.url), ["layout", "plan"])`. */
export function roomsTest(folder: URL, rooms: Rooms): void {
  it("rooms import one way, types included", () => expect(brokenRules(folder, rooms)).toEqual([]));
  it("no file imports itself through others", () => {
    const imports = importsIn(folder);
    expect(circlesIn([...imports.keys()], (file) => imports.get(file)!)).toEqual([]);
  });
}

/** Each import that the order forbids, each circle of rooms in a layer, and what is in no room or has no file. */
export function brokenRules(folder: URL, rooms: Rooms): string[] {
  const layers = rooms.map((layer) => [layer].flat());
  const names = layers.flat();
  const layerOf = new Map(layers.flatMap((layer, i) => layer.map((room) => [room, i] as const)));
  const isEntry = (file: string): boolean => !file.includes("/");
  const imports = importsIn(folder);
  const broken: string[] = [];

  const roomOf = new Map<string, string>();
  for (const file of imports.keys()) {
    const fitting = names.filter((room) => file === room || file.startsWith(`${room}/`));
    const room = fitting.sort((a, b) => b.length - a.length)[0];
    if (room !== undefined) roomOf.set(file, room);
    else if (!isEntry(file)) broken.push(`${file} is in no room`);
  }
  const used = new Set(roomOf.values());
  broken.push(...names.filter((room) => !used.has(room)).map((room) => `room ${room} has no file`));

  const roomsBeside = new Map(names.map((room) => [room, new Set<string>()]));
  for (const [file, others] of imports) {
    const room = roomOf.get(file);
    if (room === undefined) continue;
    for (const other of others) {
      const otherRoom = roomOf.get(other);
      if (otherRoom === undefined) {
        if (isEntry(other)) broken.push(`${file} imports the entry ${other}`);
      } else if (layerOf.get(otherRoom)! > layerOf.get(room)!) broken.push(`${file} imports ${other}`);
      else if (otherRoom !== room && layerOf.get(otherRoom) === layerOf.get(room))
        roomsBeside.get(room)!.add(otherRoom);
    }
  }
  return [
    ...broken,
    ...circlesIn(names, (room) => roomsBeside.get(room)!).map((circle) => `circle of rooms: ${circle}`),
  ];
}

const IMPORT = /\b(?:from|import)\s*\(?\s*"([.#][^"]*)"/g;

/** By source file: the files beside it that it imports, with types. Tests are left out. */
function importsIn(folder: URL): Map<string, readonly string[]> {
  const named = namedImports(folder);
  const files = readdirSync(folder, { recursive: true, encoding: "utf8" })
    .map((name) => name.replaceAll("\\", "/"))
    .filter((name) => name.endsWith(".ts") && !/\.(test|soak)\.ts$/.test(name))
    .sort();
  const resolved = (file: string, path: string): readonly string[] => {
    if (path.startsWith("#")) return named.get(path) ?? [];
    const target = posix.join(posix.dirname(file), path);
    return [`${target}.ts`, posix.join(target, "index.ts")].filter((name) => existsSync(new URL(name, folder)));
  };
  const importsOf = (file: string): string[] =>
    [...readFileSync(new URL(file, folder), "utf8").matchAll(IMPORT)].flatMap(([, path]) => resolved(file, path!));
  return new Map(files.map((file) => [file, importsOf(file)]));
}

/** The files behind each name such as `#platform` in the package's manifest. */
function namedImports(folder: URL): Map<string, readonly string[]> {
  const manifest = new URL("../package.json", folder);
  const { imports = {} } = existsSync(manifest) ? JSON.parse(readFileSync(manifest, "utf8")) : {};
  const filesOf = (conditions: unknown) =>
    [...JSON.stringify(conditions).matchAll(/"\.\/src\/([^"]*)"/g)].map(([, file]) => file!);
  return new Map(Object.entries(imports).map(([name, conditions]) => [name, filesOf(conditions)]));
}

/** Circles that `next` makes, each as `a -> b -> a`. There is one where there are any. */
function circlesIn(nodes: readonly string[], next: (node: string) => Iterable<string>): string[] {
  const open: string[] = [];
  const done = new Set<string>();
  const circles: string[] = [];
  const visit = (node: string): void => {
    if (done.has(node)) return;
    if (open.includes(node)) {
      circles.push([...open.slice(open.indexOf(node)), node].join(" -> "));
      return;
    }
    open.push(node);
    for (const other of next(node)) visit(other);
    open.pop();
    done.add(node);
  };
  for (const node of nodes) visit(node);
  return circles;
}
