import { expectCode } from "@opt/testkit";
import { afterEach, expect, it } from "vitest";
import { OptError } from "../errors/errors";
import { type HostIo, hostIo, registerHostIo } from "./host-io";

afterEach(() => registerHostIo(() => ({})));

it("is what was registered last, loaded once, when it is first asked for", () => {
  const first: HostIo = { crc32: (bytes, before) => bytes.length + before };
  let loads = 0;
  registerHostIo(() => {
    loads++;
    return first;
  });
  expect(loads).toBe(0);
  expect([hostIo(), hostIo(), loads]).toEqual([first, first, 1]);
  const second: HostIo = {};
  registerHostIo(() => second);
  expect(hostIo()).toBe(second);
});

it("has nothing where the platform has no native code", () => {
  registerHostIo(() => {
    throw new OptError("DEVICE_UNAVAILABLE", "cpu", "there is no binary.");
  });
  expect(hostIo()).toEqual({});
});

it("says what else is wrong", () => {
  registerHostIo(() => {
    throw new OptError("INTERNAL", "cpu", "it is broken.");
  });
  expectCode("INTERNAL", () => hostIo());
  expectCode("BAD_ARGUMENT", () => registerHostIo("cpu" as never));
});
