/// <reference types="@webgpu/types" />
/** What a kernel is here: shaders made for a spec, and how a launch becomes dispatches of them. */
import type { Kind, Launch, Slice, Spec } from "@opt/core/backend";
import type { Shader } from "./shader/shader";

/** The device that shaders are written for. */
export interface Target {
  /** Sums may use subgroups. */
  readonly subgroups: boolean;
  /** How many times the elements of a GPU's workgroup one takes: where software imitates a GPU few run at a time, and each costs its start. */
  readonly grain: number;
}

/** What a launcher may do. */
export interface Execution {
  readonly target: Target;
  /** The largest slice that one binding shows, in bytes. */
  readonly largestBinding: number;
  /** Enqueues `groups` workgroups (any number) on slices in the shader's order; the lengths of those seen as `bytes` count bytes. */
  dispatch(shader: Shader, slices: readonly Slice[], params: Readonly<Record<string, number>>, groups: number): void;
  /** Where slices start in the ranges that a dispatch would bind, in their units of so many bytes. */
  starts(where: string, slices: readonly Slice[], units: readonly number[]): number[];
  /** Words that the device reads; uploaded only when they differ from what this kernel used before. */
  table(owner: object, words: Uint32Array): Slice;
  /** Uninitialised memory for `length` words, until the launch returns. */
  scratch(length: number): Slice;
}

/** One file per kernel exports one of these. */
export interface KernelSource<K extends Kind, Prepared> {
  /** The shaders of a spec; what depends on shapes is made at launch and cached here. @throws OptError UNSUPPORTED */
  prepare(spec: Spec<K>, target: Target): Prepared;
  launch(launch: Launch<K>, prepared: Prepared, execution: Execution): void;
}
