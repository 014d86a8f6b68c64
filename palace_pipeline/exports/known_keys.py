"""The keys that formats are known to have, level by level (see `drift.unknown_keys`); others are told as drift.

Gathered from the formats' public descriptions and parsers, and from the keys that their own programs write, checked
2026-11-29: convoviz' chatgpt-spec, agentsview, openwebui-importer's schemas, docs.slack.dev. A key that is missing here
costs nobody anything: a line in `palace formats` asks for it.
"""

from __future__ import annotations


def _keys(text: str) -> frozenset[str]:
    return frozenset(text.split())


CHATGPT = {
    "": _keys(
        """
        title create_time update_time mapping moderation_results current_node plugin_ids conversation_id
        conversation_template_id gizmo_id gizmo_type is_archived is_starred safe_urls blocked_urls default_model_slug
        conversation_origin voice async_status disabled_tool_ids is_do_not_remember memory_scope sugar_item_id
        sugar_item_visible id model_slug pinned_time owner context_scopes is_study_mode workspace_id is_read_only
        atlas_mode_enabled project_id project_name categories snippet user_id status gizmo
        is_temporary_chat content_references_by_file starred_time tags
        """
    ),
    "mapping.*": _keys("id message parent children"),
    "mapping.*.message": _keys(
        "id author create_time update_time content status end_turn weight metadata recipient channel"
    ),
    "mapping.*.message.author": _keys("role name metadata"),
}

CLAUDE = {
    "": _keys(
        """
        uuid name summary created_at updated_at account chat_messages model settings is_starred is_temporary project
        project_uuid current_leaf_message_uuid platform organization_uuid organization session_id conversation_id
        workspace_id created_by last_message_at
        """
    ),
    "chat_messages.*": _keys(
        """
        uuid text content sender role index created_at updated_at edited_at truncated stop_reason attachments files
        files_v2 sync_sources parent_message_uuid input_mode metadata rating chat_feedback nOptions selectedOption
        compaction_summary compacted model
        """
    ),
}

_SLACK_MESSAGE = _keys(
    """
    type subtype ts user text team blocks attachments files file upload upload_reply_to display_as_bot x_files
    client_msg_id thread_ts reply_count reply_users reply_users_count replies latest_reply is_locked subscribed
    last_read unread_count parent_user_id reactions edited user_team source_team user_profile bot_id bot_profile
    bot_link username icons app_id hidden channel channel_type event_ts inviter purpose topic old_name name members
    root pinned_to pinned_info item item_type comment room no_notifications permalink metadata assistant_app_thread
    is_starred mrkdwn is_intro is_ephemeral deleted_ts previous_message message original parent is_thread_broadcast
    ekm_access_denied delete_original language saved channel_id thread is_limited num_members canvas call
    new_broadcast old_channel creator unfurl_links unfurl_media is_share user_name real_name
    """
)
SLACK = {"": _SLACK_MESSAGE | {"messages", "id", "created"}, "messages.*": _SLACK_MESSAGE}

DEEPSEEK = {
    "": _keys(
        """
        id title title_type inserted_at updated_at mapping seq_id agent version current_message_id pinned model
        chat_session chat_messages code msg data
        """
    ),
    "mapping.*": _keys("id parent children message"),
    "mapping.*.message": _keys(
        """
        files model inserted_at fragments content reasoning_content thinking_content search_results role message_id
        parent_id status thinking_enabled search_enabled thinking_elapsed_secs accumulated_token_usage feedback
        ban_edit ban_regenerate has_pending_fragment auto_continue conversation_mode tips
        """
    ),
    "mapping.*.message.fragments.*": _keys(
        "id type content results queries query status references stage_id elapsed_secs cite_index"
    ),
}

GROK = {
    "": _keys("conversation responses conversations projects tasks media_posts"),
    "conversation": _keys(
        """
        id conversation_id _id user_id anon_user_id create_time modify_time system_prompt_id system_prompt_name
        temporary leaf_response_id title summary asset_ids root_asset_id x_user_id starred media_types controller
        task_result_id team_id shared_with_team shared_with_user_ids workspaces
        """
    ),
    "responses.*": _keys("response share_link"),
    "responses.*.response": _keys(
        """
        _id response_id id conversation_id message sender create_time parent_response_id manual partial shared query
        query_type web_search_results cited_web_search_results xpost_ids xposts cited_xposts webpage_urls
        file_attachments file_attachments_metadata image_attachments generated_image_urls image_edit_uris
        card_attachments_json steps model metadata thinking_trace agent_thinking_traces thinking_start_time
        thinking_end_time xai_user_id media_types error file_uris is_control ui_layout tool_responses
        """
    ),
}

MISTRAL = {
    "": _keys(
        """
        id version chatId content contentChunks role createdAt updatedAt reaction reactionDetail reactionComment
        preference preferenceOver context canvas quotes files model parentId parentVersion
        """
    ),
}

DISCORD = {
    "": _keys("guild channel dateRange exportedAt messages messageCount"),
    "messages.*": _keys(
        """
        id type timestamp timestampEdited callEndedTimestamp isPinned content author attachments components embeds
        stickers reactions mentions reference forwardedMessage interaction inlineEmojis poll
        """
    ),
}

_TELEGRAM_MESSAGE = _keys(
    """
    id type date date_unixtime edited edited_unixtime from from_id author forwarded_from forwarded_from_id saved_from
    reply_to_message_id reply_to_peer_id reply_to_story_id via_bot text text_entities photo photo_file_size width height
    file file_name file_size thumbnail thumbnail_file_size media_type mime_type duration_seconds sticker_emoji performer
    title self_destruct_period_seconds contact_information contact_vcard contact_vcard_file_size location_information
    live_location_period_seconds place_name address game_title game_description game_link game_message_id
    invoice_information poll todo_list giveaway_information giveaway_results paid_media paid_stars_amount
    media_spoiler inline_bot_buttons reactions signature actor actor_id action members inviter message_id score amount
    currency recurring discard_reason duration period schedule_date emoticon cost months new_title new_icon_emoji_id
    button_id peer_id peers values information_text reason_domain reason_app_id reason_app_name from_name to to_id
    distance boosts stars stars_amount transaction_id gift_id gift_code gift_text winners unclaimed giveaway_message_id
    is_limited is_anonymous via_giveaway boost_peer_id charge_id story effect quote
    """
)
TELEGRAM = {
    "": _keys(
        """
        about personal_information profile_pictures stories contacts frequent_contacts sessions web_sessions other_data
        chats left_chats name type id messages
        """
    ),
    "messages.*": _TELEGRAM_MESSAGE,
    "chats": _keys("about list"),
    "left_chats": _keys("about list"),
    "chats.list.*": _keys("name type id messages"),
    "chats.list.*.messages.*": _TELEGRAM_MESSAGE,
}

_OPEN_WEBUI_CHAT = _keys(
    """
    id title models model params options system history messages tags timestamp files variables originalChatId
    branchPointMessageId template_settings chat_id user_id created_at updated_at share_id archived pinned meta folder_id
    chat summary tasks last_read_at
    """
)
OPEN_WEBUI = {
    "": _OPEN_WEBUI_CHAT,
    "chat": _OPEN_WEBUI_CHAT,
    "chat.history": _keys("messages currentId current_id"),
    "chat.history.messages.*": _keys(
        """
        id parentId childrenIds role content timestamp user models model modelName modelIdx done output files sources
        citations usage info error statusHistory status annotation feedbackId followUps embeds code_executions merged
        originalContent lastSentence selectedModelId context completedAt favorite arena raContent metadata name
        tool_calls tool_call_id userContext isStreaming reasoning_content stopped images chat_id created_at
        """
    ),
}

LIBRECHAT = {
    "": _keys("conversationId endpoint title exportAt branches recursive options messages messagesTree"),
    "messages.*": _keys(
        """
        _id __v messageId conversationId parentMessageId responseMessageId overrideParentMessageId sender text content
        isCreatedByUser createdAt updatedAt clientTimestamp error unfinished model endpoint tokenCount summary
        summaryTokenCount files attachments iconURL plugin plugins feedback finish_reason invocationId depth
        siblingIndex children user conversationSignature current cancelled bg thread_id addedConvo metadata agent_id
        expiredAt meiliIndex _meiliIndex conversation searchResult isEdited manualSkills contextMeta
        """
    ),
}

LM_STUDIO = {
    "": _keys(
        """
        name pinned createdAt preset tokenCount userLastMessagedAt assistantLastMessagedAt systemPrompt messages
        usePerChatPredictionConfig perChatPredictionConfig clientInput clientInputFiles userFilesSizeBytes
        lastUsedModel notes plugins pluginConfigs disabledPluginTools looseFiles folderPath tokenCountIsExact
        """
    ),
    "messages.*": _keys("versions currentlySelected"),
    "messages.*.versions.*": _keys(
        "type role content steps senderInfo processed preprocessed genInfo id createdAt timestamp"
    ),
}
