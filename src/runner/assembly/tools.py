# SPDX-License-Identifier: Apache-2.0
"""Which tools a runtime has: those the runner ships, and those the program passes in.

Owns that two never have one name. Leaves to the perimeter whether one may run (P2).
"""

from collections.abc import Sequence

from runner.assembly.vault import vault_of
from runner.capability.documents.reader import Documents
from runner.capability.profile import ProfileSource
from runner.capability.sandbox.bubblewrap import Bubblewrap
from runner.capability.sandbox.unconfined import Unconfined
from runner.capability.tools.commandrules import command_rules
from runner.capability.tools.documents import NAME as READ_DOCUMENT
from runner.capability.tools.documents import ReadDocument
from runner.capability.tools.drafting import MoveToBin, PatchFile, WriteFile
from runner.capability.tools.filesystem import ListDir, ReadFile, SearchText
from runner.capability.tools.shell import NAME as SHELL
from runner.capability.tools.shell import Shell
from runner.capability.tools.web import WebFetch
from runner.capability.transport.web import WebTransport
from runner.capability.vault.tool import NAME as SEARCH_DOCUMENTS
from runner.capability.vault.tool import SearchDocuments
from runner.kernel.config import Config
from runner.kernel.errors import ConfigError, Mistake
from runner.kernel.ports import Effect, Tool
from runner.perimeter.fetching import Outlet
from runner.perimeter.grants import Blame
from runner.perimeter.logins import Logins
from runner.perimeter.policy import Policy


def by_name(tools: Sequence[Tool], blame: Blame) -> dict[str, Tool]:
    """Return `tools` by name; raise `ConfigError` when two have one name, since a grant would mean either."""
    found: dict[str, Tool] = {}
    mistakes: list[Mistake] = []
    for tool in tools:
        if not hasattr(tool, "spec"):
            problem, fix = f"a {type(tool).__name__} is no tool", "wrap a function: HostTool(function)"
            mistakes.append(blame(("tools",), problem, fix))
            continue
        if tool.spec.name in found:
            problem = f"two tools are named {tool.spec.name!a}"
            mistakes.append(blame(("tools",), problem, "give the tool you pass another name"))
        found[tool.spec.name] = tool
    if mistakes:
        raise ConfigError(mistakes)
    return found


def shipped_tools(config: Config, source: ProfileSource) -> tuple[Tool, ...]:
    """Return the tools that the runner ships, as the grants of `config`, read from `source`, want them."""
    reading = (
        ListDir(),
        ReadFile(),
        _read_document(config),
        SearchText(documents_by=_documents_tool(config)),
        SearchDocuments(vault=vault_of(config, source)),
    )
    return *reading, WriteFile(), PatchFile(), MoveToBin(), _shell(config), WebFetch()


def outlet_of(config: Config, policy: Policy, logins: Logins) -> Outlet | None:
    """Return the one way of tools to the network, under the ceiling of `config`; None where none has it.

    Pages are asked for with what `logins` hold.
    """
    if all(grant.effect is not Effect.NET for grant in policy.grants.values()):
        return None
    return Outlet(transport=WebTransport(), ceiling=config.perimeter.ceiling, logins=logins)


def _read_document(config: Config) -> ReadDocument:
    """Return the tool that reads documents: in a sandbox, unless the profile says otherwise."""
    grant = config.policy.grant_for(READ_DOCUMENT)
    free = grant is not None and grant.sandbox == "unrestricted"
    return ReadDocument(Documents(Unconfined() if free else Bubblewrap()), confined=not free)


def _documents_tool(config: Config) -> str | None:
    """Return the granted tool that looks into documents, the one that searches if both do; None for none.

    The index has documents only where they are read in a sandbox.
    """
    grant = config.policy.grant_for(READ_DOCUMENT)
    if grant is None:
        return None
    indexed = grant.sandbox != "unrestricted" and config.policy.grant_for(SEARCH_DOCUMENTS) is not None
    return SEARCH_DOCUMENTS if indexed else READ_DOCUMENT


def _shell(config: Config) -> Shell:
    """Return the tool that starts the programs `config` names, confined unless it says otherwise."""
    grant = config.policy.grant_for(SHELL)
    named = () if grant is None else grant.commands or ()
    binaries = {name: rules for name, rules in command_rules().items() if name in named}
    if grant is not None and grant.sandbox == "unrestricted":
        return Shell(binaries, Unconfined(), effect=Effect.RUN_FREE)
    return Shell(binaries, Bubblewrap())
