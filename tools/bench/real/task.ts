/** A model of the size that users train, and how it trains. */
import type { Tensor } from "@opt/core";
import type { Module } from "@opt/nn";

export interface RealTask {
  readonly model: Module;
  /** What `loss` is given: a new batch each time. */
  batch(index: number): Tensor[];
  loss(...batch: Tensor[]): Tensor;
  /** Of the optimizer, as PyTorch's class. */
  readonly optimizer: "AdamW" | "SGD";
  readonly lr: number;
}

export type RealModel = "resnet" | "gpt" | "lstm" | "unet" | "dlrm" | "pinn";
