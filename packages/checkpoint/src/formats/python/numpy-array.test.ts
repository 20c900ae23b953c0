/** Arrays and scalars as NumPy 2.4 pickles them: the stored texts are its own pickles, in base64. */
import type { ErrorCode } from "@opt/core";
import { describe, expect, it } from "vitest";
import { expectCode } from "../../../testing/expect-code";
import { floats } from "../../../testing/files/made-files";
import { Call, Name, pickleOf, Tuple } from "../../../testing/files/pickles";
import { memorySource, readBytes } from "../bytes/source";
import { NUMPY_GLOBALS, numpyArray, numpyScalar } from "./numpy-array";
import { readPickleOf } from "./pickle";

const LIMITS = { globals: new Set([...NUMPY_GLOBALS, "_codecs.encode"]) };

async function read(pickle: Uint8Array) {
  const source = memorySource("a.pkl", pickle);
  const array = numpyArray(await readPickleOf(source, LIMITS), source);
  return array && { ...array, bytes: await readBytes(array.bytes, 0, array.bytes.byteLength) };
}

const stored = (text: string) => read(Buffer.from(text, "base64"));

/** An array of two elements or of another shape, its bytes in the pickle or (as text) in Latin-1. */
function made(type: string, data: unknown, shape: readonly unknown[] = [2], order = "<"): Uint8Array {
  const dtype = new Call(new Name("numpy", "dtype"), [type, false, true], new Tuple(3, order));
  const args = [new Name("numpy", "ndarray"), new Tuple(0), "b"];
  const state = new Tuple(1, new Tuple(...shape), dtype, false, data);
  return pickleOf(new Call(new Name("numpy._core.multiarray", "_reconstruct"), args, state));
}

describe("NumPy's arrays", () => {
  const rows = { dtype: "F32", shape: [2, 3], bytes: floats(0, 1, 2, 3, 4, 5) };
  it.each(
    Object.entries({
      "protocol 2":
        "gAJjbnVtcHkuX2NvcmUubXVsdGlhcnJheQpfcmVjb25zdHJ1Y3QKcQBjbnVtcHkKbmRhcnJheQpxAUsAhXECY19jb2RlY3MKZW5jb2RlCnEDWAEAAABicQRYBgAAAGxhdGluMXEFhnEGUnEHh3EIUnEJKEsBSwJLA4ZxCmNudW1weQpkdHlwZQpxC1gCAAAAZjRxDImIh3ENUnEOKEsDWAEAAAA8cQ9OTk5K/////0r/////SwB0cRBiiWgDWBsAAAAAAAAAAADCgD8AAABAAABAQAAAwoBAAADCoEBxEWgFhnESUnETdHEUYi4=",
      "protocol 2, by columns":
        "gAJjbnVtcHkuX2NvcmUubXVsdGlhcnJheQpfcmVjb25zdHJ1Y3QKcQBjbnVtcHkKbmRhcnJheQpxAUsAhXECY19jb2RlY3MKZW5jb2RlCnEDWAEAAABicQRYBgAAAGxhdGluMXEFhnEGUnEHh3EIUnEJKEsBSwJLA4ZxCmNudW1weQpkdHlwZQpxC1gCAAAAZjRxDImIh3ENUnEOKEsDWAEAAAA8cQ9OTk5K/////0r/////SwB0cRBiiGgDWBsAAAAAAAAAAABAQAAAwoA/AADCgEAAAABAAADCoEBxEWgFhnESUnETdHEUYi4=",
      "protocol 4":
        "gASVowAAAAAAAACMFm51bXB5Ll9jb3JlLm11bHRpYXJyYXmUjAxfcmVjb25zdHJ1Y3SUk5SMBW51bXB5lIwHbmRhcnJheZSTlEsAhZRDAWKUh5RSlChLAUsCSwOGlGgDjAVkdHlwZZSTlIwCZjSUiYiHlFKUKEsDjAE8lE5OTkr/////Sv////9LAHSUYolDGAAAAAAAAIA/AAAAQAAAQEAAAIBAAACgQJR0lGIu",
      "protocol 4, by columns":
        "gASVowAAAAAAAACMFm51bXB5Ll9jb3JlLm11bHRpYXJyYXmUjAxfcmVjb25zdHJ1Y3SUk5SMBW51bXB5lIwHbmRhcnJheZSTlEsAhZRDAWKUh5RSlChLAUsCSwOGlGgDjAVkdHlwZZSTlIwCZjSUiYiHlFKUKEsDjAE8lE5OTkr/////Sv////9LAHSUYohDGAAAAAAAAEBAAACAPwAAgEAAAABAAACgQJR0lGIu",
      "protocol 5":
        "gAWVjgAAAAAAAACME251bXB5Ll9jb3JlLm51bWVyaWOUjAtfZnJvbWJ1ZmZlcpSTlCiWGAAAAAAAAAAAAAAAAACAPwAAAEAAAEBAAACAQAAAoECUjAVudW1weZSMBWR0eXBllJOUjAJmNJSJiIeUUpQoSwOMATyUTk5OSv////9K/////0sAdJRiSwJLA4aUjAFDlHSUUpQu",
      "protocol 5, by columns":
        "gAWVjgAAAAAAAACME251bXB5Ll9jb3JlLm51bWVyaWOUjAtfZnJvbWJ1ZmZlcpSTlCiWGAAAAAAAAAAAAAAAAABAQAAAgD8AAIBAAAAAQAAAoECUjAVudW1weZSMBWR0eXBllJOUjAJmNJSJiIeUUpQoSwOMATyUTk5OSv////9K/////0sAdJRiSwJLA4aUjAFGlHSUUpQu",
    }),
  )("are read of %s", async (_, text) => {
    expect(await stored(text)).toEqual(rows);
  });

  it("may have no dimension, or no element", async () => {
    expect(
      await stored(
        "gASVigAAAAAAAACMFm51bXB5Ll9jb3JlLm11bHRpYXJyYXmUjAxfcmVjb25zdHJ1Y3SUk5SMBW51bXB5lIwHbmRhcnJheZSTlEsAhZRDAWKUh5RSlChLASloA4wFZHR5cGWUk5SMAmY0lImIh5RSlChLA4wBPJROTk5K/////0r/////SwB0lGKJQwQAAGBAlHSUYi4=",
      ),
    ).toEqual({ dtype: "F32", shape: [], bytes: floats(3.5) });
    expect(
      await stored(
        "gASViwAAAAAAAACMFm51bXB5Ll9jb3JlLm11bHRpYXJyYXmUjAxfcmVjb25zdHJ1Y3SUk5SMBW51bXB5lIwHbmRhcnJheZSTlEsAhZRDAWKUh5RSlChLAUsASwOGlGgDjAVkdHlwZZSTlIwCZjSUiYiHlFKUKEsDjAE8lE5OTkr/////Sv////9LAHSUYolDAJR0lGIu",
      ),
    ).toEqual({ dtype: "F32", shape: [0, 3], bytes: floats() });
  });

  it.each([
    ["b1", "BOOL", 1],
    ["i1", "I8", 1],
    ["i2", "I16", 2],
    ["i4", "I32", 4],
    ["i8", "I64", 8],
    ["u1", "U8", 1],
    ["u2", "U16", 2],
    ["u4", "U32", 4],
    ["u8", "U64", 8],
    ["f2", "F16", 2],
    ["f4", "F32", 4],
    ["f8", "F64", 8],
    ["c8", "C64", 8],
    ["bfloat16", "BF16", 2],
  ])("of %s are %s", async (type, dtype, width) => {
    const bytes = Uint8Array.from({ length: 2 * width }, (_, i) => i + 200);
    expect(await read(made(type, bytes))).toEqual({ dtype, shape: [2], bytes });
    const text = Buffer.from(bytes).toString("latin1");
    const encoded = new Call(new Name("_codecs", "encode"), [text, "latin1"]);
    expect(await read(made(type, encoded))).toEqual({ dtype, shape: [2], bytes });
  });

  it("of one byte have no order", async () => {
    expect(await read(made("u1", Uint8Array.of(1, 2), [2], ">"))).toMatchObject({ dtype: "U8" });
  });

  it.each<[string, ErrorCode, Uint8Array]>([
    [
      "big-endian numbers",
      "UNSUPPORTED",
      Buffer.from(
        "gASVowAAAAAAAACMFm51bXB5Ll9jb3JlLm11bHRpYXJyYXmUjAxfcmVjb25zdHJ1Y3SUk5SMBW51bXB5lIwHbmRhcnJheZSTlEsAhZRDAWKUh5RSlChLAUsCSwOGlGgDjAVkdHlwZZSTlIwCZjSUiYiHlFKUKEsDjAE+lE5OTkr/////Sv////9LAHSUYolDGAAAAAA/gAAAQAAAAEBAAABAgAAAQKAAAJR0lGIu",
        "base64",
      ),
    ],
    [
      "Python objects",
      "UNSUPPORTED",
      Buffer.from(
        "gASVjQAAAAAAAACMFm51bXB5Ll9jb3JlLm11bHRpYXJyYXmUjAxfcmVjb25zdHJ1Y3SUk5SMBW51bXB5lIwHbmRhcnJheZSTlEsAhZRDAWKUh5RSlChLAUsChZRoA4wFZHR5cGWUk5SMAk84lImIh5RSlChLA4wBfJROTk5K/////0r/////Sz90lGKJXZQofZROZXSUYi4=",
        "base64",
      ),
    ],
    [
      "texts",
      "UNSUPPORTED",
      Buffer.from(
        "gASVkwAAAAAAAACMFm51bXB5Ll9jb3JlLm11bHRpYXJyYXmUjAxfcmVjb25zdHJ1Y3SUk5SMBW51bXB5lIwHbmRhcnJheZSTlEsAhZRDAWKUh5RSlChLAUsChZRoA4wFZHR5cGWUk5SMAlUylImIh5RSlChLA4wBPJROTk5LCEsESwh0lGKJQxBhAAAAAAAAAGIAAABjAAAAlHSUYi4=",
        "base64",
      ),
    ],
    ["a type of a prototype's name", "UNSUPPORTED", made("constructor", Uint8Array.of(1, 2))],
    ["a negative length", "CORRUPT", made("u1", Uint8Array.of(1, 2), [-2])],
    ["more elements than numbers count", "CORRUPT", made("u1", Uint8Array.of(1, 2), [2 ** 30, 2 ** 30])],
    ["bytes that are numbers", "UNSUPPORTED", made("u1", 7)],
  ])("of %s are rejected with %s", async (_, code, pickle) => {
    await expectCode(code, read(pickle));
  });
});

describe("NumPy's scalars", () => {
  it.each<[string, unknown, string]>([
    [
      "float64",
      0.5,
      "gASVagAAAAAAAACMFm51bXB5Ll9jb3JlLm11bHRpYXJyYXmUjAZzY2FsYXKUk5SMBW51bXB5lIwFZHR5cGWUk5SMAmY4lImIh5RSlChLA4wBPJROTk5K/////0r/////SwB0lGJDCAAAAAAAAOA/lIaUUpQu",
    ],
    [
      "float32",
      0.5,
      "gASVZgAAAAAAAACMFm51bXB5Ll9jb3JlLm11bHRpYXJyYXmUjAZzY2FsYXKUk5SMBW51bXB5lIwFZHR5cGWUk5SMAmY0lImIh5RSlChLA4wBPJROTk5K/////0r/////SwB0lGJDBAAAAD+UhpRSlC4=",
    ],
    [
      "int32",
      -5,
      "gASVZgAAAAAAAACMFm51bXB5Ll9jb3JlLm11bHRpYXJyYXmUjAZzY2FsYXKUk5SMBW51bXB5lIwFZHR5cGWUk5SMAmk0lImIh5RSlChLA4wBPJROTk5K/////0r/////SwB0lGJDBPv///+UhpRSlC4=",
    ],
    [
      "int64",
      "9007199254740993",
      "gASVagAAAAAAAACMFm51bXB5Ll9jb3JlLm11bHRpYXJyYXmUjAZzY2FsYXKUk5SMBW51bXB5lIwFZHR5cGWUk5SMAmk4lImIh5RSlChLA4wBPJROTk5K/////0r/////SwB0lGJDCAEAAAAAACAAlIaUUpQu",
    ],
    [
      "bool",
      true,
      "gASVYwAAAAAAAACMFm51bXB5Ll9jb3JlLm11bHRpYXJyYXmUjAZzY2FsYXKUk5SMBW51bXB5lIwFZHR5cGWUk5SMAmIxlImIh5RSlChLA4wBfJROTk5K/////0r/////SwB0lGJDAQGUhpRSlC4=",
    ],
    [
      "uint8",
      7,
      "gASVYwAAAAAAAACMFm51bXB5Ll9jb3JlLm11bHRpYXJyYXmUjAZzY2FsYXKUk5SMBW51bXB5lIwFZHR5cGWUk5SMAnUxlImIh5RSlChLA4wBfJROTk5K/////0r/////SwB0lGJDAQeUhpRSlC4=",
    ],
    [
      "uint64",
      "18446744073709551615",
      "gASVagAAAAAAAACMFm51bXB5Ll9jb3JlLm11bHRpYXJyYXmUjAZzY2FsYXKUk5SMBW51bXB5lIwFZHR5cGWUk5SMAnU4lImIh5RSlChLA4wBPJROTk5K/////0r/////SwB0lGJDCP//////////lIaUUpQu",
    ],
  ])("of %s are %j", async (_, value, text) => {
    expect(numpyScalar(await readPickleOf(memorySource("a.pkl", Buffer.from(text, "base64")), LIMITS))).toBe(value);
  });

  it("are nothing else", () => expect([numpyScalar(1), numpyScalar(undefined)]).toEqual([undefined, undefined]));
});
