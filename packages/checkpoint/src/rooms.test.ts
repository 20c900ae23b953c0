import { readdirSync, readFileSync } from "node:fs";
import { dirname, join, relative, sep } from "node:path";
import { fileURLToPath } from "node:url";
import { expect, it } from "vitest";

const SRC = fileURLToPath(new URL(".", import.meta.url));

/** Each room may look into those before it only. */
const ROOMS = [
  "layout",
  "plan",
  "stores",
  "platform",
  "bucket",
  "format",
  ...["save/step", "save/shards", "save/ranks", "save"],
  "formats",
  "read",
  // Writers of other systems' files stand beside their readers, and stream through what reads.
  "formats/*write",
  "ledger",
  "command",
];

const files = readdirSync(SRC, { recursive: true, encoding: "utf8" }).filter(
  (name) => name.endsWith(".ts") && !/\.(test|soak)\.ts$/.test(name),
);

function importsOf(file: string): string[] {
  const text = readFileSync(join(SRC, file), "utf8");
  const found = text.matchAll(/(?:from|import\()\s*"(\.[^"]*)"/g);
  return [...found].map(([, path]) => `${relative(SRC, join(SRC, dirname(file), path!))}.ts`);
}

const isWriter = (file: string): boolean => /^formats\/(convert|(\w+\/)?write(-[\w-]+)?)\.ts$/.test(file);

const roomOf = (name: string): number => {
  const file = name.split(sep).join("/");
  if (isWriter(file)) return ROOMS.indexOf("formats/*write");
  return ROOMS.findIndex((room) => file.startsWith(`${room}/`));
};

it("rooms are imported one way, types included", () => {
  const inRooms = files.filter((file) => file.includes(sep));
  expect(inRooms.filter((file) => roomOf(file) < 0)).toEqual([]);
  const back = inRooms.flatMap((file) =>
    importsOf(file).flatMap((other) => (roomOf(other) > roomOf(file) ? [`${file} imports ${other}`] : [])),
  );
  expect(back).toEqual([]);
});

it("only what runs on Node alone imports from it", () => {
  const onNode = /^(platform\/node[\w-]*|command\/.*)\.ts$/;
  const imports = files.filter((file) => /(from|import\() ?"node:/.test(readFileSync(join(SRC, file), "utf8")));
  expect(imports.filter((file) => !onNode.test(file.split(sep).join("/")))).toEqual([]);
});

it("no file imports itself through others", () => {
  const open: string[] = [];
  const done = new Set<string>();
  const circles: string[] = [];
  const visit = (file: string): void => {
    if (done.has(file)) return;
    if (open.includes(file)) {
      circles.push([...open.slice(open.indexOf(file)), file].join(" -> "));
      return;
    }
    open.push(file);
    for (const other of importsOf(file)) visit(other);
    open.pop();
    done.add(file);
  };
  for (const file of files) visit(file);
  expect(circles).toEqual([]);
});
