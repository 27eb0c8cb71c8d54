"""What is stored of conversations that the service keeps."""

from __future__ import annotations

from gateway.chat.conversation import MAX_CONVERSATIONS, ConversationState, ConversationStore


def test_the_least_recently_used_conversation_is_dropped() -> None:
    """Its tools are searched for again."""
    store = ConversationStore()
    store.put("old", ConversationState(shown=("add",)))
    store.put("used", ConversationState(shown=("add",)))
    for number in range(MAX_CONVERSATIONS - 1):
        assert ("add",) == store.get("used").shown
        store.put(str(number), ConversationState())

    assert ConversationState() == store.get("old")
