import { expectCode } from "@opt/testkit";
import { expect, it } from "vitest";
import { openJsBackend } from "../js/backend";
import { hostMap } from "./host-map";
import { init, registerBackend } from "./registry";

it("is the default device's, and undefined where that has none", async () => {
  const mapFile = (file: number, offset: number, bytes: number) => Uint8Array.of(file, offset >> 16, bytes).buffer;
  registerBackend({ name: "maps", rank: -1, load: async () => Object.assign(openJsBackend(), { mapFile }) });
  const device = await init("maps");
  expect(hostMap(3, 1 << 17, 7)).toEqual(Uint8Array.of(3, 2, 7));
  await device.close();
  expect(hostMap(3, 0, 7)).toBeUndefined();
});

it.each([
  [-1, 0, 1],
  [3, 1, 1],
  [3, 0, 0],
  [3, 0, 0.5],
])("refuses the file %d from %d on, %d bytes", (...wrong) => {
  expectCode("BAD_ARGUMENT", () => hostMap(...wrong));
});
