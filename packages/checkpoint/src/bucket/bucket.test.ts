import { expect, it, vi } from "vitest";
import { objectFileSystem } from "../stores/objects";
import { Bucket } from "./bucket";
import type { Client } from "./client";

/** A bucket of these keys, which it lists two at a time. */
function bucketOf(keys: string[]) {
  const ask = vi.fn(async (method: string, _key: string, { query = {} }: { query?: Record<string, string> } = {}) => {
    if (method === "DELETE") keys.splice(0, keys.length, ...keys.filter((key) => key !== _key));
    const { prefix = "", "continuation-token": token = "0" } = query;
    const below = keys.filter((key) => key.startsWith(prefix)).sort();
    const rows = [...new Set(below.map((key) => /^[^/]*\/?/.exec(key.slice(prefix.length))![0]))].map((name) =>
      name.endsWith("/")
        ? `<CommonPrefixes><Prefix>${prefix}${name}</Prefix></CommonPrefixes>`
        : `<Contents><Key>${prefix}${name}</Key></Contents>`,
    );
    const from = Number(token);
    const next = from + 2 < rows.length ? `<NextContinuationToken>${from + 2}</NextContinuationToken>` : "";
    return { status: 200, body: new TextEncoder().encode(`${rows.slice(from, from + 2).join("")}${next}`) };
  });
  const bucket = new Bucket({ ask, name: (key: string) => key } as unknown as Client);
  const writer = { remove: async (key: string) => void (await ask("DELETE", key)) };
  const fileSystem = objectFileSystem({
    stat: async () => undefined,
    read: async () => {},
    list: (folder) => bucket.list(folder),
    writer: writer as never,
  });
  return { bucket, fileSystem, keys };
}

it("lists all pages of a folder, folders in it once", async () => {
  const { bucket } = bucketOf(["run/b/1", "run/b/2", "run/a", "run/c", "run/d/e/f", "run2/a", "other"]);
  const names = (await bucket.list("run")).map(({ name, kind }) => `${kind} ${name}`);
  expect(names.sort()).toEqual(["file a", "file c", "folder b", "folder d"]);
});

it("removes a folder and nothing beside it, whatever keys of others are called", async () => {
  const { fileSystem, keys } = bucketOf(["run/x/1", "run/x/a/2", "run/x//3", "run/x/../4", "run/x/./5", "run/y", "z"]);
  await fileSystem.remove("run/x");
  expect(keys).toEqual(["run/x//3", "run/x/../4", "run/x/./5", "run/y", "z"]);
});
