import { expectCode } from "@opt/testkit";
import { expect, it } from "vitest";
import { openJsBackend } from "../js/backend";
import { hostPages } from "./host-pages";
import { init, registerBackend } from "./registry";

it("is the default device's, and undefined where that has none", async () => {
  const pages = (bytes: number) => new Uint8Array(bytes);
  registerBackend({ name: "pages", rank: -1, load: async () => Object.assign(openJsBackend(), { pages }) });
  const device = await init("pages");
  expect(hostPages(7)).toEqual(new Uint8Array(7));
  await device.close();
  expect(hostPages(7)).toBeUndefined();
});

it.each([-1, 0.5, Number.NaN, "8"])("refuses %s bytes", (wrong) => {
  expectCode("BAD_ARGUMENT", () => hostPages(wrong as number));
});
