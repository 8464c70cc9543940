#!/usr/bin/env python3
"""What Hugging Face's GptOssForCausalLM computes from a model of models/, in float32 on the CPU.

  hugging_face.py <model folder> <golden.json> <out.json>

Writes, for the prompts of golden.json, the logits after each prompt, its mean log-probability, and how far the given
golden values are from them. Needs torch, transformers and safetensors.
"""
import json
import sys

import torch
from safetensors import safe_open
from transformers import GptOssConfig, GptOssForCausalLM

FP4 = torch.tensor([0, .5, 1, 1.5, 2, 3, 4, 6, -0., -.5, -1, -1.5, -2, -3, -4, -6])


def dequantise(blocks, scales):
    """[..., blocks, 16] and [..., blocks] to [..., blocks * 32]; the low nibble is the even element."""
    pairs = torch.stack([FP4[(blocks & 15).long()], FP4[(blocks >> 4).long()]], -1)
    values = pairs.flatten(-2) * torch.exp2(scales.float() - 127)[..., None]
    return values.flatten(-2)


def load(folder):
    config = json.load(open(folder + "/config.json"))
    config.pop("quantization_config", None)
    model = GptOssForCausalLM._from_config(GptOssConfig(**config), attn_implementation="eager", dtype=torch.float32)
    state = {}
    with safe_open(folder + "/model.safetensors", "pt") as file:
        for name in file.keys():
            if name.endswith("_blocks"):
                rows = dequantise(file.get_tensor(name), file.get_tensor(name.replace("_blocks", "_scales")))
                state[name.removesuffix("_blocks")] = rows.transpose(1, 2).contiguous()
            elif not name.endswith("_scales"):
                state[name] = file.get_tensor(name).float()
    model.load_state_dict(state, strict=True)
    return model.eval()


def run(folder, golden_path, out_path, device="cpu"):
    torch.manual_seed(0)
    model = load(folder).to(device)
    golden = json.load(open(golden_path))
    worst, cases = [], []
    for case in golden["cases"]:
        ids = torch.tensor([case["ids"]], device=device)
        with torch.no_grad():
            logits = model(ids).logits[0].double().cpu()
        log_probs = torch.log_softmax(logits[:-1], -1).gather(1, ids[0, 1:, None].cpu())
        last = logits[-1]
        worst.append(max(abs(last[i].item() - v) for i, v in case["last_top20"]))
        top = last.topk(20)
        cases.append({"ids": len(case["ids"]), "mean_logprob": log_probs.mean().item(),
                      "logsumexp": torch.logsumexp(last, -1).item(),
                      "last_top20": [[i, v] for i, v in zip(top.indices.tolist(), top.values.tolist())]})
    json.dump({"torch": torch.__version__, "cases": cases}, open(out_path, "w"))
    print(folder, device, "largest difference from the golden logits, per case:", ["%.2g" % w for w in worst])


if __name__ == "__main__":
    run(*sys.argv[1:])
