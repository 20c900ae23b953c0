/** Compiled shaders and their bind groups, made once for each arrangement of buffers. */
import { OptError } from "@opt/core";
import type { BindingRange } from "../memory/binding-ranges";
import { type Shader, writeShader } from "../shader/shader";
import type { Faults } from "./faults";

export class Pipelines {
  readonly #layouts = new Map<number, { group: GPUBindGroupLayout; pipeline: GPUPipelineLayout }>();
  readonly #pipelines = new WeakMap<Shader, Map<string, GPUComputePipeline>>();
  readonly #groups = new Map<string, GPUBindGroup>();
  /** Pipelines compiled so far. */
  compiled = 0;

  constructor(
    private readonly device: GPUDevice,
    private readonly faults: Faults,
    private readonly uniforms: GPUBuffer,
  ) {}

  pipeline(shader: Shader, pattern: readonly number[], bindings: number): GPUComputePipeline {
    let byPattern = this.#pipelines.get(shader);
    if (byPattern === undefined) {
      byPattern = new Map();
      this.#pipelines.set(shader, byPattern);
    }
    const key = pattern.join();
    let pipeline = byPattern.get(key);
    if (pipeline === undefined) {
      pipeline = this.#compile(shader, pattern, bindings);
      byPattern.set(key, pipeline);
    }
    return pipeline;
  }

  #compile(shader: Shader, pattern: readonly number[], bindings: number): GPUComputePipeline {
    this.compiled++;
    const { name: label } = shader;
    const code = writeShader(shader, pattern);
    const compile = () => {
      const module = this.device.createShaderModule({ label, code });
      const { pipeline: layout } = this.#layout(bindings);
      return this.device.createComputePipeline({ label, layout, compute: { module, entryPoint: "main" } });
    };
    const toError = (message: string) =>
      new OptError(
        "DEVICE_ERROR",
        `webgpu kernel ${label}`,
        `does not compile: ${message}`,
        "Its driver may be at fault.",
      );
    return this.faults.watch("validation", compile, toError);
  }

  #layout(bindings: number): { group: GPUBindGroupLayout; pipeline: GPUPipelineLayout } {
    let layout = this.#layouts.get(bindings);
    if (layout === undefined) {
      const visibility = 4; // GPUShaderStage.COMPUTE, which Node has not as a global
      const entries: GPUBindGroupLayoutEntry[] = [
        { binding: 0, visibility, buffer: { type: "uniform", hasDynamicOffset: true } },
        ...Array.from({ length: bindings }, (_, k) => ({
          binding: k + 1,
          visibility,
          buffer: { type: "storage" as const },
        })),
      ];
      const group = this.device.createBindGroupLayout({ entries });
      layout = { group, pipeline: this.device.createPipelineLayout({ bindGroupLayouts: [group] }) };
      this.#layouts.set(bindings, layout);
    }
    return layout;
  }

  /** The bind group of some ranges, beside `uniformBytes` of the ring at a dynamic offset. */
  group(ranges: readonly BindingRange[], uniformBytes: number): GPUBindGroup {
    let key = `${uniformBytes}`;
    for (const { heap, start, bytes } of ranges) key += ` ${heap.id}:${start}:${bytes}`;
    let group = this.#groups.get(key);
    if (group === undefined) {
      if (this.#groups.size >= 4096) this.#groups.clear();
      group = this.device.createBindGroup({
        layout: this.#layout(ranges.length).group,
        entries: [
          { binding: 0, resource: { buffer: this.uniforms, size: uniformBytes } },
          ...ranges.map(({ heap: { buffer }, start: offset, bytes: size }, k) => ({
            binding: k + 1,
            resource: { buffer, offset, size },
          })),
        ],
      });
      this.#groups.set(key, group);
    }
    return group;
  }

  /** Lets go of the bind groups of a buffer that is about to be destroyed. */
  forget(heapId: number): void {
    for (const key of this.#groups.keys()) if (key.includes(` ${heapId}:`)) this.#groups.delete(key);
  }
}
