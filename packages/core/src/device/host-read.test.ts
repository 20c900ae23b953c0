import { expectCode } from "@opt/testkit";
import { expect, it } from "vitest";
import { openJsBackend } from "../js/backend";
import { hostRead } from "./host-read";
import { init, registerBackend } from "./registry";

it("is the default device's, and none where that has none", async () => {
  const readFile = async (file: number, bytes: Uint8Array, position: number) => file + bytes.length + position;
  registerBackend({ name: "reads", rank: -1, load: async () => Object.assign(openJsBackend(), { readFile }) });
  const device = await init("reads");
  expect(await hostRead(3, new Uint8Array(4), 2 ** 40)).toBe(7 + 2 ** 40);
  await device.close();
  expect(hostRead(3, new Uint8Array(4), 0)).toBeUndefined();
});

it.each([
  ["a descriptor that is none", -1, new Uint8Array(4), 0],
  ["a position that is none", 3, new Uint8Array(4), 0.5],
  ["a position before the file", 3, new Uint8Array(4), -1],
  ["memory that is not of bytes", 3, new Float32Array(4), 0],
  ["no memory", 3, undefined, 0],
])("refuses %s", (_, file, bytes, position) => {
  expectCode("BAD_ARGUMENT", () => hostRead(file, bytes as Uint8Array, position));
});
