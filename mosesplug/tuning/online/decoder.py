"""Settings that contradict an online run."""

from __future__ import annotations

from dataclasses import replace

from mosesplug.errors import UsageError
from mosesplug.settings.checks import reject_combinations
from mosesplug.settings.configuration import Configuration
from mosesplug.settings.online import OnlineSettings


def check_online(configuration: Configuration, online: OnlineSettings) -> None:
    """Reject settings that contradict an online run.

    Raises:
        UsageError: there is one.
    """
    decoding, optimization = configuration.decoding, configuration.optimization
    rejected = {
        "{--lattice-samples}": decoding.lattice_samples > 0,
        "{--transform}": decoding.transform is not None,
        "{--input-type} 1": decoding.decoder.input_type == 1,
        "{--skip-decoder}": configuration.skip_decoder,
        "{--keep-extractor-files}": configuration.keep_extractor_files,
        "{--iterations-window}": optimization.window >= 0,
        "{--historic-bests}": optimization.historic_bests,
        "{--interpolation}": optimization.interpolation > 0,
        "{--select} best-dev": configuration.select == "best-dev",
    }
    reject_combinations("{--online}", rejected)
    held_out = configuration.held_out
    if optimization.sparse_max and held_out is not None and held_out.every:
        raise UsageError(
            "{--sparse-max} chooses the features at the end of the first epoch, so "
            "{--heldout-every} would select among weights of all features. Leave out "
            "{--heldout-every}, or use {--sparse-min-count}."
        )
    by_graphs = decoding.decoder.stored_graphs is not None or decoding.graphs is not None
    is_asked = "decoding" not in decoding.decoder.capabilities
    if (by_graphs or is_asked) and replace(online, keep_lists=True) != OnlineSettings():
        who = "search graphs decode" if by_graphs else "whoever asks for them decodes"
        raise UsageError(
            "{--online-decoder}, {--online-servers}, {--online-network} and {--strict-online}"
            f" require a decoder program, but {who} the mini-batches here. Leave these options out."
        )
    if is_asked and optimization.sharding is not None:
        raise UsageError(
            "mini-batches are asked for and told one after the other: leave out {--shards} and"
            " {--async}"
        )
    if online.decoder == "server" and (reason := decoding.decoder.no_server) is not None:
        raise UsageError(reason)
    if (sharding := optimization.sharding) is None:
        return
    if sharding.directory is not None:
        raise UsageError(
            "workers that decode keep their files in the working directory, which all of them must"
            " see. Leave out {--shard-directory}."
        )
    if sharding.asynchronous:
        if decoding.graphs is not None:
            raise UsageError(
                "{--async} does not wait for the end of an epoch, where search graphs are made."
                " Leave out {--forest}, or decode with existing graphs (forest:DIR)."
            )
        if sharding.elsewhere and online.decoder != "process" and not by_graphs:
            raise UsageError(
                "with {--online} {--async}, only threads keep servers running from batch to batch."
                " Use {--online-decoder process}, or leave out {--workers} and {--scheduler}."
            )
        return
    if held_out is not None and held_out.every:
        raise UsageError(
            "shards have no common weights to evaluate before the end of an epoch. Leave out"
            " {--heldout-every}."
        )
