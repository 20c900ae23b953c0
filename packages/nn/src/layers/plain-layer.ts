/** Layers without arguments. They throw for any, because JavaScript would silently drop what PyTorch takes by position. */
import { check, show } from "@opt/core";
import { Module } from "../module/module";

export abstract class PlainLayer extends Module {
  /** @throws OptError BAD_ARGUMENT for any argument */
  constructor(...none: readonly never[]) {
    super();
    check(
      none.length === 0,
      "BAD_ARGUMENT",
      new.target.name,
      () => `takes no arguments, got ${show(none[0])}.`,
      "Results are new tensors; other axes than Flatten's are joined by flatten(x, start, end).",
    );
  }
}
