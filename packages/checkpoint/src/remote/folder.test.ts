import { expect, it } from "vitest";
import { expectCode } from "../../testing/expect-code";
import { scratchFolder } from "../../testing/fixtures";
import { shortWaits } from "../../testing/short-waits";
import { COMMITS, webServer } from "../../testing/web-server";
import { memoryFileSystem, openFolder } from "../index";

const held = webServer();
const folder = scratchFolder();
shortWaits();

async function textOf(address: string, name: string, options: Parameters<typeof openFolder>[1]): Promise<string> {
  const { path, fileSystem } = await openFolder(address, options);
  const file = await fileSystem.open(`${path}/${name}`, "read");
  const bytes = new Uint8Array(await file.size());
  await file.read(bytes, 0);
  await file.close();
  return new TextDecoder().decode(bytes);
}

it("opens the files of a hub, of a server and of a store", async () => {
  const { web } = held;
  web.files.set(`/owner/name/resolve/${COMMITS[0]}/config.json`, Buffer.from("hub"));
  web.files.set("/folder/config.json", Buffer.from("web"));
  expect(await textOf("hf://owner/name", "config.json", { endpoint: web.url })).toBe("hub");
  web.token = "secret";
  const { signal } = new AbortController();
  const options = { endpoint: web.url, token: "secret", cache: folder.path, cacheLimit: 1 << 30, signal };
  expect(await textOf("hf://owner/name", "config.json", options)).toBe("hub");
  web.token = undefined;
  expect(await textOf(`${web.url}/folder`, "config.json", {})).toBe("web");
  const fileSystem = memoryFileSystem();
  expect(await openFolder("a", { fileSystem })).toEqual({ path: "a", fileSystem });
  await expectCode("BAD_ARGUMENT", openFolder(""));
});

it("rejects a limit without a cache, and a token for a path where nothing is", async () => {
  await expectCode("BAD_ARGUMENT", openFolder("hf://owner/name", { cacheLimit: 1 << 30 }));
  expect(await expectCode("MISSING", openFolder("owner/name", { token: "secret" }))).toMatch(
    /Write hf:\/\/owner\/name/,
  );
  expect(await openFolder(folder.path, { token: "secret" })).toMatchObject({ path: folder.path });
});
